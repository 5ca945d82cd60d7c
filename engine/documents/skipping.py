"""What a folder's reader leaves out by name or kind, before any file is opened, and the word for the reason."""

from __future__ import annotations

import os
import re
import stat
from fnmatch import translate
from pathlib import PurePath

FOLDER_FILE_LIMIT = 2 * 1024 * 1024
"""Bytes of the largest file that is taken of a folder: larger ones are data or generated."""

_FOLDERS = {
    *(".git", ".hg", ".svn", ".bzr", ".jj"),
    *("__pycache__", "node_modules", ".venv", ".tox", ".nox", ".eggs", ".gradle", ".terraform"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"),
}
_SECRET_FOLDERS = {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"}
_SECRET_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".htpasswd", ".dockercfg"),
    *(".git-credentials", ".s3cfg", ".boto", ".my.cnf"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx"),
    *("credentials", "credentials.*", "credentials-*", "secrets", "secrets.*", "client_secret*.json", "service[-_]account*.json"),
    *("*.tfstate", "*.tfstate.backup", "*.tfvars", "*.ovpn", "wallet.dat", "kubeconfig"),
)
_NO_SECRET = ("*.pub", "*.example", "*.sample", "*.template", "*.dist", "*.md", "*.rst", "*.html")
_CODE = {
    *(".py", ".pyi", ".js", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".scala", ".swift"),
    *(".c", ".cc", ".cpp", ".h", ".hpp", ".cs", ".rb", ".php"),
}
_NOISE = (
    *(".ds_store", "thumbs.db", "desktop.ini", "._*", "*.swp", "*~"),
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "pdm.lock", "pipfile.lock"),
    *("cargo.lock", "composer.lock", "gemfile.lock", "go.sum", "flake.lock", "packages.lock.json", "*.min.js", "*.min.css", "*.map"),
)
_BINARY = {
    *(".png", ".jpg", ".jpeg", ".gif", ".bmp", ".ico", ".icns", ".webp", ".tif", ".tiff", ".psd", ".xcf", ".heic", ".avif"),
    *(".mp3", ".wav", ".flac", ".ogg", ".opus", ".m4a", ".mp4", ".mkv", ".mov", ".avi", ".webm"),
    *(".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".jar", ".war", ".apk", ".whl", ".egg", ".deb", ".rpm"),
    *(".dmg", ".iso", ".img", ".so", ".dylib", ".dll", ".exe", ".o", ".a", ".lib", ".obj", ".pyc", ".pyo", ".class", ".wasm", ".pdb"),
    *(".ttf", ".otf", ".woff", ".woff2", ".eot", ".mo", ".gmo"),
    *(".pdf", ".docx", ".doc", ".xlsx", ".xls", ".pptx", ".ppt", ".odt", ".ods", ".odp", ".hwp", ".hwpx", ".epub", ".mobi", ".djvu"),
    *(".sqlite", ".sqlite3", ".db", ".parquet", ".npy", ".npz", ".pt", ".pth", ".onnx", ".safetensors", ".gguf", ".bin", ".h5"),
    *(".pkl", ".pickle"),
}


def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(glob) for glob in globs))


_IS_SECRET, _IS_NO_SECRET, _IS_NOISE = _pattern(_SECRET_NAMES), _pattern(_NO_SECRET), _pattern(_NOISE)
_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"


def folder_reason(path: str | os.PathLike[str], status: os.stat_result) -> str | None:
    """Why a folder inside the one that was added is left out, or None. It may be read to see whether it is a cache or an environment."""
    name = PurePath(path).name.lower()
    if is_link(status):
        return "link"
    if name in _SECRET_FOLDERS:
        return "secret"
    return "ignored" if name in _FOLDERS or _is_derived(os.fspath(path)) else None


def file_reason(name: str, status: os.stat_result) -> str | None:
    """Why a file (its last name and its lstat) is left out unread, or None. Names are compared without regard to case."""
    if is_link(status):
        return "link"
    if not stat.S_ISREG(status.st_mode):
        return "special"
    name = name.lower()
    if is_secret(name):
        return "secret"
    if _IS_NOISE.match(name):
        return "ignored"
    if PurePath(name).suffix in _BINARY:
        return "binary"
    if not status.st_size:
        return "empty"
    return "too_large" if status.st_size > FOLDER_FILE_LIMIT else None


def is_secret(name: str) -> bool:
    """Whether a name (lower case) is one that keys, passwords and tokens are kept under. Source code with such a name is none."""
    return bool(_IS_SECRET.match(name)) and not _IS_NO_SECRET.match(name) and PurePath(name).suffix not in _CODE


def is_private_key(text: str) -> bool:
    """Whether a file is a key by its first line, whatever its name."""
    return bool(re.match(r"\s*-----BEGIN [A-Z ]*PRIVATE KEY", text[:200]))


def is_link(status: os.stat_result) -> bool:
    """A symbolic link, or on Windows a junction. They are never followed: what they lead to may lie outside, or around them."""
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & 0x400)


def _is_derived(path: str) -> bool:
    """A virtual environment, or a folder tagged as a cache (https://bford.info/cachedir/), such as the home of this program."""
    if os.path.exists(os.path.join(path, "pyvenv.cfg")):
        return True
    try:
        with open(os.path.join(path, "CACHEDIR.TAG"), "rb") as tag:
            return tag.read(len(_TAG)) == _TAG
    except OSError:
        return False
