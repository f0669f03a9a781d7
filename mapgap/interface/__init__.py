"""The public interface: the functions of ``import mapgap`` and what they return."""
