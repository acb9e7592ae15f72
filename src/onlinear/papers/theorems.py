"""Both sides of the papers' theorems, kept at every row or iteration of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear import Learner
from onlinear.losses import factor_of
from onlinear.papers.measuring import Tracker, tracked
from onlinear.papers.optimum import mean_loss, soft_all, squares
from onlinear.papers.problems import LearningProblem

ROUNDING = 1e-10


def mean_gradient(problem: LearningProblem, w: np.ndarray) -> np.ndarray:
    """The gradient of the mean loss."""
    factor = factor_of(problem.loss)
    slopes = [factor * problem.loss.slope(s, y) for s, y in zip(np.asarray(problem.split.X @ w), problem.y, strict=True)]
    return np.asarray(problem.split.X.T @ np.array(slopes)) / len(problem.y)


def vi_gap(problem: LearningProblem, w: np.ndarray, z: np.ndarray) -> float:
    """P1 Thm 4.2, left side at v = (w*, w*, mu*): l(w) + r(z) - F* + <mu*, w - z>."""
    best = problem.optimum
    at_w = problem.objective(w) - problem.penalty_value(w)
    return at_w + problem.penalty_value(z) - best.value + float(best.mu @ (w - z))


class Regret(Tracker):
    """(1/t) sum_k [l_k(w_k) + r(w_k) - l_k(w*) - r(w*)], w_k the last iterate before row k."""

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        self.total, self.r_star = 0.0, problem.penalty_value(problem.optimum.w)

    def before(self, x: np.ndarray, y: float) -> None:
        w, best = self.learner.weights(), self.problem.optimum.w
        own = self.sample_loss(w, x, y) + self.problem.penalty_value(w)
        self.total += own - self.sample_loss(best, x, y) - self.r_star
        self.t += 1

    @property
    def average(self) -> float:
        """The average regret."""
        return self.total / max(self.t, 1)


class OneStep(Tracker):
    """P3's one-step gain delta_t = l_t(w_{t+1}) - l_t(w_t) - <g_t, w_{t+1} - w_t>, sum |g_t|^2, the largest |g_t|, |w_t - w*|.

    ``decrease`` sums l_t(w_t) - l_t(w_{t+1}) - |w_{t+1} - w_t|^2 / (2 eta_t), which is (eta_t/2) |g_t|^2 - delta_t less
    |w_{t+1} - w_t + eta_t g_t|^2 / (2 eta_t).
    """

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        self.total, self.least, self.largest_gradient, self.largest_distance = 0.0, np.inf, 0.0, 0.0
        self.squares = self.decrease = 0.0
        best = problem.optimum.w
        others = np.random.default_rng(0).normal(size=(4, len(best)))
        self.u = np.vstack([best, 0.0 * best, others])
        self.u_penalties = np.array([problem.penalty_value(u) for u in self.u])
        self.slack = np.inf

    def before(self, x: np.ndarray, y: float) -> None:
        self.w = self.learner.weights()
        self.slope = self.sample_slope(self.w, x, y)
        gradient = abs(self.slope) * float(np.linalg.norm(x))
        self.squares += gradient**2
        self.largest_gradient = max(self.largest_gradient, gradient)
        self.largest_distance = max(self.largest_distance, float(np.linalg.norm(self.w - self.problem.optimum.w)))

    def after(self, x: np.ndarray, y: float) -> None:
        new = self.learner.weights()
        less = self.sample_loss(self.w, x, y) - self.sample_loss(new, x, y)
        gain = -less - self.slope * float((new - self.w) @ x)
        self.total += gain
        self.least = min(self.least, gain)
        self.t += 1
        self.decrease += less - float(np.sum((new - self.w) ** 2)) / (2.0 * float(self.learner.engine.eta(self.t)))
        self.slack = min(self.slack, float(np.min(self.room(x, y, new, gain))))

    def room(self, x: np.ndarray, y: float, new: np.ndarray, gain: float) -> np.ndarray:
        """P3 Lemma 1, right less left side, at u = w*, 0 and four random points.

        eta [l_t(w_t) + r(w_{t+1}) - l_t(u) - r(u)]
            <= |w_t - u|^2 / 2 - |w_{t+1} - u|^2 / 2 + eta^2 |g_t|^2 / 2 - eta delta_t
        """
        eta = float(self.learner.engine.eta(self.t))
        losses = np.array([self.sample_loss(u, x, y) for u in self.u])
        left = eta * (self.sample_loss(self.w, x, y) + self.problem.penalty_value(new) - losses - self.u_penalties)
        nearer = np.sum((self.w - self.u) ** 2, axis=1) - np.sum((new - self.u) ** 2, axis=1)
        return 0.5 * nearer + 0.5 * (eta * self.slope) ** 2 * float(x @ x) - eta * gain - left


class Inequality(Tracker):
    """P1 Thm 4.1: both sides, at the saddle point and at 20 random v = (w, z, mu); SADMM with a fixed rho.

    sum_k [F^k(util) - F^k(u)] + sum_k <vtil - v, Q(v)>  <=  (rho/2) |z|^2 + |mu|^2 / (2 rho)
    with util = (w, z) after row k, mutil = mu + rho (w - z before it), Q(v) = (mu, -mu, z - w). ``ahead``: the VI regret of
    Remark 1, the same sum with (w, z, mu) before row k, as an online learner would have to predict. ``slack``: on every row,
    with primes for what is after it, the least right less left side of
    Lemma A.1:  F^k(util) - F^k(u) + <vtil - v, Q(v)>  <=  -rho <z* - z', z - z'> - <mu* - mutil, mu - mu'> / rho
    Lemma A.2:  that  <=  (rho/2) (|z* - z|^2 - |z* - z'|^2) + (|mu* - mu|^2 - |mu* - mu'|^2) / (2 rho),   v = (w*, z*, mu*)
    """

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        best, rho = problem.optimum, float(learner.solver.rho)
        v = np.random.default_rng(0).normal(size=(21, 3, len(best.w)))
        v[0] = best.w, best.w, best.mu
        self.rho, self.v = rho, v
        self.penalties = np.array([problem.penalty_value(z) for z in v[:, 1]])
        self.right = rho / 2.0 * np.sum(v[:, 1] ** 2, axis=1) + np.sum(v[:, 2] ** 2, axis=1) / (2.0 * rho)
        self.left, self.ahead = np.zeros(len(v)), np.zeros(len(v))
        self.slack = np.full(2, np.inf)

    def before(self, x: np.ndarray, y: float) -> None:
        now = self.learner.variables()
        self.z, self.mu = now["z"], now["mu"]
        self.ahead += self.term(now["w"], self.z, self.mu, x, y)

    def after(self, x: np.ndarray, y: float) -> None:
        now = self.learner.variables()
        tilde = self.mu + self.rho * (now["w"] - self.z)
        own = self.term(now["w"], now["z"], tilde, x, y)
        self.left += own
        first, second = self.lemmas(now["z"], now["mu"], tilde)
        self.slack = np.minimum(self.slack, [np.min(first - own), np.min(second - first)])

    def lemmas(self, z: np.ndarray, mu: np.ndarray, tilde: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The right sides of Lemmas A.1 and A.2 at every v, (z, mu) after the row."""
        rho, z_star, mu_star = self.rho, self.v[:, 1], self.v[:, 2]
        first = -rho * ((z_star - z) @ (self.z - z)) - ((mu_star - tilde) @ (self.mu - mu)) / rho
        nearer = squares(z_star - self.z) - squares(z_star - z)
        return first, rho / 2.0 * nearer + (squares(mu_star - self.mu) - squares(mu_star - mu)) / (2.0 * rho)

    def term(self, w: np.ndarray, z: np.ndarray, mu: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
        """F^k(w, z) - F^k(u) + <(w, z, mu) - v, Q(v)> at every v."""
        v = self.v
        fitted = self.sample_loss(w, x, y) + self.problem.penalty_value(z)
        losses = np.array([self.sample_loss(other, x, y) for other in v[:, 0]])
        pull = (w - z) * v[:, 2] - (v[:, 0] - v[:, 1]) * v[:, 2] + (mu - v[:, 2]) * (v[:, 1] - v[:, 0])
        return fitted - losses - self.penalties + pull.sum(axis=1)

    @property
    def largest(self) -> float:
        """The largest left side over right side."""
        return float(np.max(self.left / self.right))

    @property
    def slack_1(self) -> float:
        """The least right less left side of Lemma A.1."""
        return float(self.slack[0])

    @property
    def slack_2(self) -> float:
        """The least right less left side of Lemma A.2."""
        return float(self.slack[1])

    @property
    def saddle(self) -> float:
        """The left side at the saddle point."""
        return float(self.left[0])

    @property
    def regret(self) -> float:
        """The VI regret at the saddle point."""
        return float(self.ahead[0])

    @property
    def largest_regret(self) -> float:
        """The largest VI regret over right side."""
        return float(np.max(self.ahead / self.right))


class Hyperplane(Tracker):
    """P5's quantities of every step: what = w_t - eta_t g_t, its projection w_{t+1}, tan^2 theta_t, and Thm 3.2's two sides."""

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        self.holds = self.decreases = 0
        self.H, self.tangent, self.last_tangent = np.inf, 0.0, 0.0
        self.left = self.moved = self.etas = self.gradient = 0.0
        self.losses = 0.0
        self.regret = 0.0

    def before(self, x: np.ndarray, y: float) -> None:
        self.w = self.learner.weights()
        self.eta = self.learner.engine.eta(self.learner.t + 1)
        self.g = -(y - float(self.w @ x)) * x
        best = self.problem.optimum.w
        self.excess = self.sample_loss(self.w, x, y) - self.sample_loss(best, x, y)
        self.hat = self.w - self.eta * self.g

    def after(self, x: np.ndarray, y: float) -> None:
        self.t += 1
        new, best = self.learner.weights(), self.problem.optimum.w
        moved = float(np.sum((new - self.hat) ** 2))
        before, now = float(np.sum((self.w - best) ** 2)), float(np.sum((new - best) ** 2))
        self.holds += now - before <= self.eta**2 * float(self.g @ self.g) - 2.0 * self.eta * self.excess - moved + 1e-12
        tangent = moved / now
        self.decreases += tangent < self.last_tangent
        self.last_tangent, self.tangent = tangent, float(np.sqrt(tangent))
        if self.t > 1:  # the first step interpolates; the theorem's sum starts with the second
            self.H = min(self.H, tangent / self.eta)
        self.left += 2.0 * self.eta * self.excess
        self.regret += self.excess
        self.moved += moved
        self.etas += self.eta**2
        self.gradient = max(self.gradient, float(np.linalg.norm(self.g)))

    @property
    def holding(self) -> float:
        """The share of steps on which Theorem 3.2 holds."""
        return self.holds / max(self.t, 1)

    @property
    def decreasing(self) -> float:
        """The share of steps on which tan theta_t decreased."""
        return self.decreases / max(self.t - 1, 1)

    @property
    def right(self) -> float:
        """The right side of Theorem 3.3: |w*|^2 - Gs^2 + G^2 sum eta^2, Gs^2 as measured."""
        return float(np.sum(self.problem.optimum.w**2)) - self.moved + self.gradient**2 * self.etas

    @property
    def mean_excess(self) -> float:
        """(1/t) sum of l_k(w_k) - l_k(w*)."""
        return self.regret / max(self.t, 1)


class LossRegret(Tracker):
    """sum_k [l_k(w_k) - l_k(w*)], w_k the last iterate before row k, from the learner's own sum of losses."""

    by_row = False

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        self.best = 0.0

    def learned(self, X: Any, y: np.ndarray) -> None:
        self.best += len(y) * mean_loss(self.problem.loss, np.asarray(X @ self.problem.optimum.w), y)

    @property
    def total(self) -> float:
        """The regret, without the penalty."""
        return self.learner.t * self.learner.progressive_loss - self.best


class BatchMeans(Tracker):
    """P1 (4), batch ADMM, which is batch Douglas-Rachford with lam = 1 / rho: the VI gap of its means, He and Yuan's case.

    ADMM's w is the splitting's z, and ADMM's z is prox_{lam h}(u), the weights after the iteration.
    """

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        self.w = self.z = np.zeros_like(problem.optimum.w)

    def iterated(self) -> None:
        self.t += 1
        self.w = self.w + (self.learner.variables()["z"] - self.w) / self.t
        self.z = self.z + (self.learner.weights() - self.z) / self.t

    @property
    def gap(self) -> float:
        """The VI gap at the saddle point; nan of a method that does not iterate."""
        return vi_gap(self.problem, self.w, self.z) if self.t else float("nan")


class Splitting(Tracker):
    """P2 section 2 at every iteration of batch Douglas-Rachford, squared loss and l1: what its proofs use.

    With grad g(x) = H x - c and eps = x - prox_{lam h}(x - lam grad g(x)) at the output x:

        (2.5)      |(x - x*) + lam (grad g(x) - grad g(x*))| does not grow
        Remark 1   |eps|^2 <= |(x_0 - x*) + lam (grad g(x_0) - grad g(x*))|^2 / (t + 1)
        (2.4)      F(x) - F* <= <x - x*, eps / lam> + <eps, ph(x) - ph(x - eps)>, ph a subgradient of h
        (2.7)      |x - x*| <= (1 + lam L) / (1 - lam L) |x_0 - x*|
        (2.10)     h(x) + g(z) - F* <= [<u, x* - z> + <x, z - x> + <u_before, x - x*>] / lam

    and what holds for any lam: |u - u*| does not grow; |x - z|^2 <= |u_0 - u*|^2 / t; (2.5) and Remark 1 with the proxes
    exchanged, which ``swapped`` runs beside. L is the largest eigenvalue of H.
    """

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        X, n = np.asarray(problem.split.X), len(problem.y)
        factor = float(problem.loss.factor)
        self.lam, self.l1 = float(learner.solver.lam), float(problem.penalty.l1)
        self.H, self.c = factor * (X.T @ X) / n, factor * (X.T @ problem.y) / n
        best = self.polished(problem.optimum.w)
        self.lipschitz = self.lam * float(np.linalg.eigvalsh(self.H)[-1])
        self.best, self.fixed = best, best - self.lam * self.gradient(best)
        self.start = self.distance = self.far(0.0 * best)
        self.u_distance = self.u_start = float(np.linalg.norm(self.fixed))
        self.F_star = problem.objective(best)
        self.F_zero = problem.objective(0.0 * best) - self.F_star
        self.rises = self.u_rises = 0
        self.residual = self.nearness = self.split_ratio = 0.0
        self.room_4 = self.room_10 = np.inf
        self.swapped = Swapped(self)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad g(x)."""
        return self.H @ x - self.c

    def polished(self, w: np.ndarray) -> np.ndarray:
        """The optimum to the last digits: the linear system of its support, whose signs w has."""
        on, best = w != 0.0, np.zeros_like(w)
        best[on] = np.linalg.solve(self.H[np.ix_(on, on)], self.c[on] - self.l1 * np.sign(w[on]))
        return best

    def error(self, x: np.ndarray) -> np.ndarray:
        """eps_g(x, lam)."""
        return x - soft_all(x - self.lam * self.gradient(x), self.lam * self.l1)

    def far(self, x: np.ndarray) -> float:
        """The distance of (2.5)."""
        away = x - self.best
        return float(np.linalg.norm(away + self.lam * (self.H @ away)))

    def iterated(self) -> None:
        self.t += 1
        now, x = self.learner.variables(), self.learner.weights()
        self.look_at_output(x)
        self.look_at_step(now["x"], now["z"], now["u"])
        self.swapped.iterate(self)

    def look_at_output(self, x: np.ndarray) -> None:
        """(2.4), (2.5), (2.7) and Remark 1."""
        eps, distance = self.error(x), self.far(x)
        self.rises += distance > self.distance + ROUNDING * self.start
        self.distance = distance
        self.residual = max(self.residual, float(eps @ eps) * (self.t + 1) / self.start**2)
        near = float(np.linalg.norm(x - self.best)) * (1.0 - self.lipschitz) / (1.0 + self.lipschitz)
        self.nearness = max(self.nearness, near / float(np.linalg.norm(self.best)))
        pulls = self.l1 * np.sign(x) - (eps / self.lam - self.gradient(x))
        right = float((x - self.best) @ eps) / self.lam + float(eps @ pulls)
        gap = self.problem.objective(x) - self.F_star
        self.room_4 = min(self.room_4, (right - gap) / self.F_zero)

    def look_at_step(self, x: np.ndarray, z: np.ndarray, u: np.ndarray) -> None:
        """(2.10), and the two statements that need no condition."""
        before = u - (z - x)
        right = (float(u @ (self.best - z)) + float(x @ (z - x)) + float(before @ (x - self.best))) / self.lam
        g = self.problem.objective(z) - self.problem.penalty_value(z)
        left = self.problem.penalty_value(x) + g - self.F_star
        self.room_10 = min(self.room_10, (right - left) / self.F_zero)
        distance = float(np.linalg.norm(u - self.fixed))
        self.u_rises += distance > self.u_distance + ROUNDING * self.u_start
        self.u_distance = distance
        self.split_ratio = max(self.split_ratio, float(np.sum((x - z) ** 2)) * self.t / self.u_start**2)

    @property
    def rising(self) -> float:
        """The share of iterations on which (2.5)'s distance grows."""
        return self.rises / max(self.t, 1)

    @property
    def u_rising(self) -> float:
        """The share of iterations on which |u - u*| grows."""
        return self.u_rises / max(self.t, 1)

    @property
    def swapped_rising(self) -> float:
        """The share of iterations on which (2.5)'s distance grows, the proxes exchanged."""
        return self.swapped.rises / max(self.t, 1)

    @property
    def swapped_residual(self) -> float:
        """The largest ratio of Remark 1, the proxes exchanged."""
        return self.swapped.residual


class Swapped:
    """x = prox_{lam g}(u), z = prox_{lam h}(2 x - u), u += z - x: He and Yuan's order, on the problem of a ``Splitting``."""

    def __init__(self, of: Splitting) -> None:
        self.inverse = np.linalg.inv(np.eye(len(of.c)) + of.lam * of.H)
        self.u, self.t, self.rises, self.residual = np.zeros_like(of.c), 0, 0, 0.0
        self.start = self.distance = float(np.linalg.norm(of.best + of.lam * of.gradient(of.best)))

    def iterate(self, of: Splitting) -> None:
        """One iteration, and what the two statements say of it."""
        x = self.inverse @ (self.u + of.lam * of.c)
        z = soft_all(2.0 * x - self.u, of.lam * of.l1)
        self.u, self.t = self.u + z - x, self.t + 1
        eps, distance = of.error(x), of.far(x)
        self.rises += distance > self.distance + ROUNDING * self.start
        self.distance = distance
        self.residual = max(self.residual, float(eps @ eps) * self.t / self.start**2)


class Interlace(Tracker):
    """P4 Lemma 1 on every step: r(w_t) - r(w_{t+1}) over A eta^2 + B eta, with the printed and the corrected A, and A = 0.

    G^2 is the largest |x|^2 and M = max |x_ij| / sigma, which bounds |w_t| of the hinge.
    """

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        l1, l2 = float(problem.penalty.l1), float(problem.penalty.l2)
        X, d = problem.split.X, problem.split.X.shape[1]
        squared, top = float(squares(X).max()), float(abs(X).max())
        root = float(np.sqrt(d * squared))  # sqrt(d) G, and sigma M = top
        first = squared + 2.0 * l1 * root + d * l1**2
        self.printed = l2 / 2.0 * max(first, d * (top + l1) ** 2 - squared + 4.0 * l1 * root)
        self.corrected = l2 / 2.0 * (squared + 4.0 * l1 * root + d * (l1 + top) ** 2)
        self.B = (l1 + top) * root + d * (top + l1) ** 2
        self.printed_ratio = self.corrected_ratio = self.bare_ratio = -np.inf

    def before(self, x: np.ndarray, y: float) -> None:
        self.value = self.problem.penalty_value(self.learner.weights())

    def after(self, x: np.ndarray, y: float) -> None:
        self.t += 1
        eta = float(self.learner.engine.eta(self.t))
        less = self.value - self.problem.penalty_value(self.learner.weights())
        self.printed_ratio = max(self.printed_ratio, less / (self.printed * eta**2 + self.B * eta))
        self.corrected_ratio = max(self.corrected_ratio, less / (self.corrected * eta**2 + self.B * eta))
        self.bare_ratio = max(self.bare_ratio, less / (self.B * eta))


tracked("regret", Regret, "average", "average regret")
tracked("gain sum", OneStep, "total", "sum of one-step gains")
tracked("gain least", OneStep, "least", "least one-step gain")
tracked("gradient bound", OneStep, "largest_gradient", "largest |g_t|")
tracked("gradient squares", OneStep, "squares", "sum of |g_t|^2")
tracked("step decrease", OneStep, "decrease", "sum of l_t(w_t) - l_t(w_{t+1}) - |w_{t+1} - w_t|^2 / (2 eta_t)")
tracked("distance bound", OneStep, "largest_distance", "largest |w_t - w*|")
tracked("theorem 4.1 left", Inequality, "saddle", "left side of Theorem 4.1 at the saddle point")
tracked("theorem 4.1 ratio", Inequality, "largest", "largest left / right side of Theorem 4.1")
tracked("lemma A.1 room", Inequality, "slack_1", "least right - left side of P1's Lemma A.1")
tracked("lemma A.2 room", Inequality, "slack_2", "least right - left side of P1's Lemma A.2")
tracked("theorem 3.2 share", Hyperplane, "holding", "share of steps on which Theorem 3.2 holds")
tracked("theorem 3.3 left", Hyperplane, "left", "2 sum eta (l(w_t) - l(w*))")
tracked("theorem 3.3 right", Hyperplane, "right", "D^2 - Gs^2 + G^2 sum eta^2")
tracked("projection gain", Hyperplane, "moved", "sum |w_{t+1} - what|^2")
tracked("largest gradient", Hyperplane, "gradient", "largest |g_t|")
tracked("mean excess", Hyperplane, "mean_excess", "mean of l(w_t) - l(w*)")
tracked("tangent", Hyperplane, "tangent", "tan theta_t")
tracked("tangent decreases", Hyperplane, "decreasing", "share of steps on which tan theta decreases")
tracked("H", Hyperplane, "H", "least tan^2 theta / eta")
tracked("lemma 1 room", OneStep, "slack", "least right - left side of P3's Lemma 1")
tracked("vi regret", Inequality, "regret", "VI regret at the saddle point")
tracked("vi regret ratio", Inequality, "largest_regret", "largest VI regret / right side of Theorem 4.1")
tracked("loss regret", LossRegret, "total", "regret of the losses")
tracked("batch vi gap", BatchMeans, "gap", "VI gap of batch ADMM's means")
tracked("rises 2.5", Splitting, "rising", "share of iterations on which the distance of (2.5) grows")
tracked("remark 1 ratio", Splitting, "residual", "largest left / right side of Remark 1")
tracked("ratio 2.7", Splitting, "nearness", "largest left / right side of (2.7)")
tracked("room 2.4", Splitting, "room_4", "least right - left side of (2.4), over F(0) - F*")
tracked("room 2.10", Splitting, "room_10", "least right - left side of (2.10), over F(0) - F*")
tracked("u rises", Splitting, "u_rising", "share of iterations on which |u - u*| grows")
tracked("x - z ratio", Splitting, "split_ratio", "largest |x - z|^2 t / |u_0 - u*|^2")
tracked("exchanged rises", Splitting, "swapped_rising", "share of iterations on which (2.5)'s distance grows, proxes exchanged")
tracked("exchanged ratio", Splitting, "swapped_residual", "largest left / right side of Remark 1, proxes exchanged")
tracked("p4 lemma 1 printed", Interlace, "printed_ratio", "largest left / right side of P4's Lemma 1, printed A")
tracked("p4 lemma 1 corrected", Interlace, "corrected_ratio", "largest left / right side of P4's Lemma 1, corrected A")
tracked("p4 lemma 1 without A", Interlace, "bare_ratio", "largest left / right side of P4's Lemma 1, A = 0")
