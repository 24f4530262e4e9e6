"""Constraints of single numbers: half lines and intervals."""

from pushforward.parameters.kind import Kind, Values, namespace, sigmoid, softplus


class Real(Kind):
    """No constraint."""

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `u`."""
        return u

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return `y`."""
        return y

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return zero."""
        return namespace(u).zeros_like(u)


class Positive(Kind):
    """`y = exp(u)`."""

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `exp(u)`."""
        return namespace(u).exp(u)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return `log y`."""
        return namespace(y).log(y)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return `u`."""
        return u


class SoftplusPositive(Kind):
    """`y = log(1 + exp(u))`."""

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `softplus(u)`."""
        return softplus(u)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return `log(exp(y) - 1)`."""
        xp = namespace(y)
        return y + xp.log(-xp.expm1(-y))

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return `log sigmoid(u)`."""
        return -softplus(-u)


class GreaterThan(Kind):
    """`y = low + exp(u)`."""

    constants = 1

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `low + exp(u)`."""
        return low + namespace(u).exp(u)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return `log(y - low)`."""
        return namespace(y).log(y - low)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return `u`."""
        return u


class LessThan(Kind):
    """`y = high - exp(u)`."""

    constants = 1

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `high - exp(u)`."""
        return high - namespace(u).exp(u)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return `log(high - y)`."""
        return namespace(y).log(high - y)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return `u`."""
        return u


class Interval(Kind):
    """`y = low + (high - low) sigmoid(u)`."""

    constants = 2

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `low + (high - low) sigmoid(u)`."""
        return low + (high - low) * sigmoid(u)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return the logit of the place in the interval."""
        xp = namespace(y)
        return xp.log(y - low) - xp.log(high - y)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return `log (high - low) + log sigmoid(u) + log sigmoid(-u)`."""
        return namespace(u).log(high - low) - softplus(u) - softplus(-u)


class UnitInterval(Kind):
    """`y = sigmoid(u)`."""

    def constrain(self, u: Values, low: Values, high: Values) -> Values:
        """Return `sigmoid(u)`."""
        return sigmoid(u)

    def unconstrain(self, y: Values, low: Values, high: Values) -> Values:
        """Return `logit y`."""
        xp = namespace(y)
        return xp.log(y) - xp.log1p(-y)

    def log_det(self, u: Values, low: Values, high: Values) -> Values:
        """Return `log sigmoid(u) + log sigmoid(-u)`."""
        return -softplus(u) - softplus(-u)
