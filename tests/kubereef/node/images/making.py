"""What the image tests share: wheels made on the spot, a control for builds, and images of one's own recipes."""

import base64
import hashlib
import threading
import zipfile
from pathlib import Path

from kubereef.node.images import Images, Settings
from kubereef.node.images.control import Control
from kubewire.sources import SystemClock


def make_wheel(folder: Path, name: str, version: str, files: dict[str, str], script: str = "") -> Path:
    """Write a wheel with the files given; `script` is a console script's name, which calls name:main."""
    about = f"{name}-{version}.dist-info"
    contents = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if script:
        contents[f"{about}/entry_points.txt"] = f"[console_scripts]\n{script} = {name}:main\n"
    record = "".join(f"{path},{_hash(text)},{len(text.encode())}\n" for path, text in contents.items())
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
        archive.writestr(f"{about}/RECORD", record + f"{about}/RECORD,,\n")
    return wheel


def _hash(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def control(reports=None, cancelled=None, timeout=60.0, clock=None) -> Control:
    heard = reports.append if reports is not None else lambda progress: None
    return Control(clock or SystemClock(), cancelled or threading.Event(), timeout, heard)


def images_with(folder: Path, recipes: str = "recipes: []", **settings) -> Images:
    """Images kept under a folder, with recipes of the test's own."""
    (folder / "recipes").mkdir(exist_ok=True)
    (folder / "recipes/test.yaml").write_text(recipes)
    return Images(folder, SystemClock(), Settings(recipes=folder / "recipes", **settings))
