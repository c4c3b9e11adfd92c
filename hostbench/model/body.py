"""Base of the bodies of requests and answers."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError, PydanticOmit

from hostbench.model.events import ParamValue, ProtocolModel


class BodyModel(ProtocolModel):
    """As exact as what a program says. Requests are validated as JSON
    (hostbench.web.body.json_body): strict validation of decoded JSON would refuse every list that
    stands for a tuple."""


# Of the errors of one body so many are told.
ERRORS_LISTED = 20


@dataclass
class ErrorsSoFar:
    """The context of the validation of one body, where a million errors would cost a gigabyte."""

    count: int = 0


def _while_errors_are_few(
    value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo
) -> Any:
    """Leave out what comes after ERRORS_LISTED errors: the whole is refused by then."""
    so_far = info.context
    if not isinstance(so_far, ErrorsSoFar):
        return validate(value)
    if so_far.count >= ERRORS_LISTED:
        raise PydanticOmit
    before = so_far.count
    try:
        return validate(value)
    except ValidationError:
        # An error inside of it has been counted there.
        so_far.count = max(so_far.count, before + 1)
        raise


# Beside the type of what a body may have many of.
WHILE_ERRORS_ARE_FEW = WrapValidator(_while_errors_are_few)


def _number_or_word(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """One error for the field, not one for each type that it might have been."""
    try:
        return validate(value)
    except ValidationError:
        raise PydanticCustomError("param_value", "give a number or a word") from None


RequestParam = Annotated[ParamValue, WrapValidator(_number_or_word)]
