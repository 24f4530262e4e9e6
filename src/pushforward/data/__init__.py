"""Data sets for studies: from a folder that is given, from a cache, or from their public source."""

from pushforward.data.covertype import Covertype as Covertype
from pushforward.data.covertype import covertype as covertype
from pushforward.data.images import Images as Images
from pushforward.data.images import images as images
from pushforward.data.scaling import MinMax as MinMax
from pushforward.data.splits import Split as Split
from pushforward.data.splits import split as split
from pushforward.data.stand_in import stand_in as stand_in
