"""Weighted sums of a series, with their mean and variance."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST_SPREAD = 0.02


@dataclass(slots=True, eq=False)
class Moments:
    weight: float = 0.0
    weight_squares: float = 0.0
    sum: float = 0.0
    squares: float = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        self.weight += weight
        self.weight_squares += weight * weight
        self.sum += weight * value
        self.squares += weight * value * value

    def join(self, other: Moments) -> None:
        self.weight += other.weight
        self.weight_squares += other.weight_squares
        self.sum += other.sum
        self.squares += other.squares

    @property
    def n(self) -> float:
        """Effective number of values (Kish)."""
        return self.weight * self.weight / self.weight_squares if self.weight_squares else 0.0

    @property
    def mean(self) -> float:
        return self.sum / self.weight if self.weight else 0.0

    def variance(self, *, bounded: bool) -> float:
        """Return the variance of a single value. Bounded values have a plausible minimum."""
        n = self.n
        found = max(0.0, self.squares / self.weight - self.mean**2) if self.weight else 0.0
        found *= n / (n - 1) if n > 1 else 2.0
        if not bounded:
            return found
        likely = (self.mean * n + 0.5) / (n + 1)
        binary = likely * (1 - likely)
        return max(found, binary * (_LEAST_SPREAD if found > 1e-12 else 1.0))

    def state(self) -> list[float]:
        return [self.weight, self.weight_squares, self.sum, self.squares]
