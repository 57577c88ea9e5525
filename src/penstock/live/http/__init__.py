"""The controller's HTTP API: JSON, OpenAPI, /metrics, tokens (docs/api.md)."""
