"""What goes wrong with images: each error has the reason that a container's waiting state shows."""


class ImageError(Exception):
    """An image cannot be had. `reason` is Kubernetes' word for it, the message names the way out."""

    reason = "ErrImagePull"


class InvalidImageName(ImageError):
    """The image field is no image reference; trying again does not help."""

    reason = "InvalidImageName"


class NeverPull(ImageError):
    """The image is absent and imagePullPolicy Never forbids to make it."""

    reason = "ErrImageNeverPull"


class NoRecipe(ImageError):
    """No recipe makes this image, or the one that matches refuses it."""


class BuildFailed(ImageError):
    """A layer could not be made."""


class BuildTimedOut(BuildFailed):
    """A layer took longer than allowed."""


class BuildCancelled(BuildFailed):
    """Nobody waits for this layer any more."""


class DiskFull(BuildFailed):
    """There is not enough room for a layer."""


class ImageInUse(ImageError):
    """An image that a container uses is not removed."""

    reason = "ImageInUse"


class BadRecipe(Exception):
    """A recipe file is wrong; the message begins with the file and the field."""
