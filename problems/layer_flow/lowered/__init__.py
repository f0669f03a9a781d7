"""Tables of layer flow for methods."""
