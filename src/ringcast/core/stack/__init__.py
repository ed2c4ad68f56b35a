"""The stack: how layers and control parts are put together and run."""
