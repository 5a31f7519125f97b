"""Service accounts: who Pods are when they speak to the API."""

from kubereef.kinds.columns import AGE, NAME
from kubereef.kinds.resource import Behaviour

SERVICE_ACCOUNTS = Behaviour(returns_deleted=True, columns=(NAME, AGE))
