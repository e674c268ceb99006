"""Runs handlers in simulated universes: many runners, one virtual clock, faults and order by a seed."""

from retoma.simulation.faults import Faults
from retoma.simulation.simulate import Scenario, SimulatedLedger, Violated, simulate

__all__ = ["Faults", "Scenario", "SimulatedLedger", "Violated", "simulate"]
