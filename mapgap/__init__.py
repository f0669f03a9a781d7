"""mapgap: how far from optimal are the published mappings of neural networks onto heterogeneous edge devices?"""

__version__ = "0.1.0"
