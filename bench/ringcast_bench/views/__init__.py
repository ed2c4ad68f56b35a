"""Groups that form and change: how long that takes."""
