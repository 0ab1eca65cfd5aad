"""What is asked: frozen values, validated completely when they are built, without torch."""

from headatlas.request.map_request import ContrastRequest, MapRequest
from headatlas.request.plan import Plan, Step
from headatlas.request.relations_request import RelationsRequest
from headatlas.request.validate_request import ValidateRequest

__all__ = ["ContrastRequest", "MapRequest", "Plan", "RelationsRequest", "Step", "ValidateRequest"]
