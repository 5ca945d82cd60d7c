"""What is wrong with where a home lies: a folder that another program copies elsewhere, or a disk behind a network.

Memory of gigabytes would be uploaded, a copy made half-way through a change is a damaged one, and file locks don't hold everywhere.
"""

from __future__ import annotations

from pathlib import Path

import psutil

_SYNCED_NAMES = (
    *("dropbox", "onedrive", "google drive", "googledrive", "my drive", "icloud drive", "mobile documents"),
    *("nextcloud", "owncloud"),
)
_SYNCED_MARKS = (".dropbox", ".stfolder", ".sync_folder", ".owncloudsync.log", ".nextcloudsync.log", ".syncthing")
_NETWORK = (
    *("nfs", "nfs4", "cifs", "smbfs", "smb2", "smb3", "9p", "afpfs", "webdav", "davfs", "ceph", "glusterfs"),
    *("fuse.sshfs", "fuse.rclone"),
)


def warnings(folder: Path) -> list[str]:
    """One sentence for each reason why a home should not lie in `folder`."""
    place = folder.resolve()
    found = []
    if (synced := next((above for above in (place, *place.parents) if _is_synced(above)), None)) is not None:
        found.append(f"{place} lies in {synced}, which another program keeps in step with other machines; use a folder of this disk alone.")
    if (system := _file_system(place)) in _NETWORK:
        found.append(f"{place} lies on a network disk ({system}), where file locks may not hold; use a folder of this machine's disk.")
    return found


def _is_synced(folder: Path) -> bool:
    name = folder.name.lower()
    named = any(name == synced or name.startswith((f"{synced} ", f"{synced}-")) for synced in _SYNCED_NAMES)
    return named or any((folder / mark).exists() for mark in _SYNCED_MARKS)


def _file_system(place: Path) -> str:
    """The type of the file system that holds a path, "" if it can't be told."""
    mounts = {Path(mount.mountpoint): mount.fstype.lower() for mount in psutil.disk_partitions(all=True)}
    return next((mounts[above] for above in (place, *place.parents) if above in mounts), "")
