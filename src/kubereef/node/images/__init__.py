"""Images: from `rayproject/ray:2.52.0` in a Pod to directories on disk, without a registry or a container runtime.

    images = Images(cache_directory(), clock)
    image = await images.pull("rayproject/ray:2.52.0", "IfNotPresent", on_progress)
    …                        # overlay of image.layers (the first wins), then image.binds read-only on top
    images.release(image)    # once for each pull, when the container is gone

A reference is looked up among recipes (`recipes.yaml`, and a folder of the user's own); what a recipe wants is made
once, stored by content and shared. Errors are ImageError: `reason` is what the container's waiting state shows
(InvalidImageName, ErrImagePull, ErrImageNeverPull) and the message names the way out. `image.warnings` are for events.
"""

from kubereef.node.images.control import OnProgress, Progress
from kubereef.node.images.errors import BadRecipe, ImageError, ImageInUse
from kubereef.node.images.image import Bind, Image, User
from kubereef.node.images.pull import Images, PullPolicy, Settings, cache_directory, recipe_directory
from kubereef.node.images.references import InvalidReference, Reference, parse_reference
from kubereef.node.images.store import Present, Stored

__all__ = [
    "BadRecipe",
    "Bind",
    "Image",
    "ImageError",
    "ImageInUse",
    "Images",
    "InvalidReference",
    "OnProgress",
    "Present",
    "Progress",
    "PullPolicy",
    "Reference",
    "Settings",
    "Stored",
    "User",
    "cache_directory",
    "parse_reference",
    "recipe_directory",
]
