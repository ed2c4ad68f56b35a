"""Other systems, each as its users would set it up to lose nothing and be fast."""
