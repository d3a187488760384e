"""Consumer groups: lag, clients and settings; create, edit and delete pages."""
