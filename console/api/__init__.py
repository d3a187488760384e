"""Base of all REST resources: base classes, errors, pagination, the OpenAPI document."""
