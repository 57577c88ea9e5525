"""The controller's HTTP API: JSON, OpenAPI, /metrics, tokens (docs/reference/http-api.md)."""
