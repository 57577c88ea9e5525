"""The pure deciders, identical in both worlds: manager, arbiter, council, ledger."""
