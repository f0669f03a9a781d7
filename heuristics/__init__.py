"""Published algorithms and the baselines of their papers, one folder per problem."""
