"""What methods of sub-operation mapping share: lowered graphs, timing, ratios. The specification uses none of it."""
