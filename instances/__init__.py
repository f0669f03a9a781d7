"""Networks, devices and instance files, and the Python that loads, expands and generates them."""
