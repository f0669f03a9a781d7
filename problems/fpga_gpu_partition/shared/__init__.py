"""What methods of both kinds build on: an instance as tables, and a short annealing of the options of the layers."""
