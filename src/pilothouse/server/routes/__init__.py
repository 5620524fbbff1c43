"""The operations of the HTTP interface, one module per noun."""
