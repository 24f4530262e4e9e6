"""Data sets for studies: from a folder that is given, from a cache, or from their public source."""

from reproduce.data.covertype import Covertype as Covertype
from reproduce.data.covertype import covertype as covertype
from reproduce.data.covertype import stand_in as stand_in
from reproduce.data.images import Images as Images
from reproduce.data.images import images as images
from reproduce.data.splits import MinMax as MinMax
from reproduce.data.splits import Split as Split
from reproduce.data.splits import split as split
