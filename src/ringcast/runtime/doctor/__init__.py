"""Why a group does not form: checks of this machine, its network and its seeds."""
