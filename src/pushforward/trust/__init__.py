"""Can I trust it? Lines of evidence on draws and a target, each with its null, and one verdict."""

from pushforward.trust.census import Census as Census
from pushforward.trust.check import check as check
from pushforward.trust.importance import weights_line as weights_line
from pushforward.trust.line import Line as Line
from pushforward.trust.report import Report as Report
from pushforward.trust.settings import CheckSettings as CheckSettings
