"""What the solvers share: engines, kinds of lazy state, and the loops that are not one method's own. Not public."""
