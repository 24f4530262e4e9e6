from pushforward.parameters.kinds import KINDS as KINDS
from pushforward.parameters.kinds import Kind as Kind
from pushforward.parameters.record import Parameter as Parameter
from pushforward.parameters.record import Parameters as Parameters
from pushforward.parameters.specs import read_constraint as read_constraint
