"""What a page is: access, areas, base classes, tables, forms, formats, templates and their tags.

The frame knows the gateway and no area. REST resources (`console/api`), middleware (`console/web`)
and every area build on the frame.
"""
