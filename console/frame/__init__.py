"""Pages: access control, areas, base classes, tables, forms, formats, templates and template tags.

The frame knows the gateway and no area. REST resources (`console/api`), middleware (`console/web`)
and every area build on the frame.
"""
