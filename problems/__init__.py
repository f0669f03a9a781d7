"""The specification of each mapping problem: instance, plan, evaluator. One folder or file per problem."""
