"""What every REST resource shares: base classes, errors, paging, the OpenAPI document."""
