"""Makes the Python environment of this checkout, `.venv`: torch, the packages of pyproject.toml, the native kernels.

Run by the Makefile with the system's Python, so: standard library only. Each step leaves a stamp (a digest of what it depended
on) in `.venv/longshelf-setup.json`; a step whose stamp still holds is skipped, and a set-up that was cut off goes on where it
stopped. What is still to be downloaded is said before the first byte.

Usage: environment.py [test] [lint]     names of extras of pyproject.toml to install too
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMPS = VENV / "longshelf-setup.json"
LOG = VENV / "longshelf-setup.log"

TORCH_VERSION = "2.13.0"
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"

# Measured on Linux x86-64 with Python 3.11, in MB: (to download, on disk).
SIZES = {"torch, CPU build": (192, 790), "torch, CUDA build": (3000, 5500), "Qt and the other packages": (145, 710), "Triton": (188, 640)}
MODEL_SIZE = (93, 100)


class SetupError(Exception):
    """The set-up can't go on; the text says why and what to do."""


def main(extras: list[str]) -> None:
    make_venv()
    stamps = json.loads(STAMPS.read_text()) if STAMPS.exists() else {}
    extras = sorted({*extras, *stamps.get("extras", [])})
    project = read_project()
    packages = requirements(project, extras)

    wanted = os.environ.get("TORCH", "").strip()
    need_torch = "torch" not in stamps or wanted not in ("", stamps["torch"])
    need_packages = need_torch or stamps.get("packages") != digest(packages)
    if need_torch:
        torch = shlex.split(wanted) or torch_build()
        announce(torch, packages)
        say("Installing torch …")
        pip("install", *torch, hint=f"CPU builds of torch come from {CPU_BUILDS}. For another build: make run TORCH='torch==…'")
        warn_about_cuda(torch)
        stamps = save(stamps, torch=wanted or shlex.join(torch))
    elif need_packages:
        say("Installing packages …")
    if need_packages:
        pip("install", *packages)
        stamps = save(stamps, packages=digest(packages), extras=extras)
    checkout = checkout_digest(project)
    if stamps.get("checkout") != checkout or (stamps.get("native") and not native_library()):
        install_checkout()
        save(stamps, checkout=checkout, native=native_library() is not None)


# ---- the environment ----


def make_venv() -> None:
    if PYTHON.exists() and run([PYTHON, "-c", "import pip"], check=False).returncode == 0:
        return
    try:
        import ensurepip  # noqa: F401  Debian leaves it out of its python3
    except ImportError as error:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        raise SetupError(f"{sys.executable} comes without its venv module. On Debian and Ubuntu:\n  sudo apt install {package}") from error
    say(f"Making {VENV.relative_to(ROOT)} with Python {platform.python_version()} …")
    run([sys.executable, "-m", "venv", "--clear", VENV])


def torch_build() -> list[str]:
    """The pip arguments for the build of torch that suits this machine.

    On Linux the build on the package index is the CUDA one, several GB; the CPU builds, whose versions end in "+cpu", lie in
    torch's own index. `===` compares versions as text, so that a CPU build within pip's reach can't stand in for the CUDA one.
    """
    if not sys.platform.startswith("linux"):
        return [f"torch=={TORCH_VERSION}"]
    if nvidia_works():
        return [f"torch==={TORCH_VERSION}"]
    cpu = f"torch=={TORCH_VERSION}+cpu"
    at_hand = run([PYTHON, "-m", "pip", "install", "--dry-run", "--no-deps", "--no-index", "-q", cpu], check=False)
    return [cpu] if at_hand.returncode == 0 else [cpu, "--extra-index-url", CPU_BUILDS]


def nvidia_works() -> bool:
    if shutil.which("nvidia-smi") is None:
        return False
    return run(["nvidia-smi", "-L"], check=False, timeout=30).returncode == 0


def warn_about_cuda(torch: list[str]) -> None:
    if not nvidia_works():
        return
    asked = run([PYTHON, "-c", "import torch; print(torch.cuda.is_available())"], check=False)
    if asked.stdout.strip() != "True":
        say(
            f"Note: there is an NVIDIA GPU, but {shlex.join(torch)} can't use it; Longshelf will run on the CPU. A newer NVIDIA driver, "
            "or another build of torch (make run TORCH='…'), mends that."
        )


# ---- packages ----


def read_project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements(project: dict[str, Any], extras: list[str]) -> list[str]:
    """Everything but the checkout itself, its build backend included: rebuilding the native kernels then needs no network."""
    chosen = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in extras:
        chosen += project["project"]["optional-dependencies"][extra]
    if compiler() and shutil.which("cmake") is None:
        chosen.append("cmake>=3.20")
    return chosen


def announce(torch: list[str], packages: list[str]) -> None:
    """Say what will be downloaded, in the order in which it comes."""
    cuda = not any("cpu" in word for word in torch) and sys.platform.startswith("linux")
    local = torch == [f"torch=={TORCH_VERSION}+cpu"]
    build = "torch, CUDA build" if cuda else "torch, CPU build"
    lines = [(f"{build} ({shlex.join(torch)})", *SIZES[build])]
    if local:
        lines = [(f"{build} (already on this machine)", 0, SIZES[build][1])]
    lines.append((f"Qt and {len(packages) - 1} other packages, with what they need", *SIZES["Qt and the other packages"]))
    if not cuda and any(package.startswith("triton") for package in packages):  # a CUDA build of torch brings it
        lines.append(("Triton, to test the kernels for GPUs", *SIZES["Triton"]))
    lines.append(("the default model, SmolLM2-135M-Instruct (once, on the first run or test)", *MODEL_SIZE))
    say("Longshelf will download, at most (what pip has cached is not downloaded again):")
    for what, download, _ in lines:
        say(f"  {download:>5} MB  {what}")
    say(f"and will take about {sum(disk for _, _, disk in lines) / 1000:.1f} GB of disk.")


# ---- the checkout ----


def compiler() -> str | None:
    """The C++ compiler that CMake will find, or None."""
    for name in (os.environ.get("CXX"), "g++", "c++", "clang++"):
        if name and (path := shutil.which(name)):
            return path
    return None


def native_library() -> Path | None:
    return next((ROOT / "kernels/cpu").glob("liblongshelf_cpu.*"), None)


def checkout_digest(project: dict[str, Any]) -> str:
    sources = sorted(path for pattern in ("*.cpp", "*.h") for path in (ROOT / "kernels/cpu").glob(pattern))
    content = [path.read_text(encoding="utf-8") for path in [ROOT / "CMakeLists.txt", *sources]]
    return digest([str(ROOT), json.dumps(project, sort_keys=True, default=str), compiler() or "", *content])


def install_checkout() -> None:
    """Put the checkout on the environment's import path, make its `longshelf` command, and build the native kernels."""
    say("Installing Longshelf and building its native kernels …")
    arguments = ["install", "--no-deps", "--no-build-isolation", "--force-reinstall", "-v", "-e", str(ROOT)]
    if compiler() is None:  # then CMake may be missing too, and there is nothing for it to do
        for setting in ("wheel.cmake=false", "editable.mode=inplace", "wheel.packages=app;engine;kernels;resources"):
            arguments += ["--config-settings", setting]
    said = pip(*arguments)
    if native_library() is None:
        cause = f"{LOG} says why" if compiler() else "no C++ compiler was found"
        notes = [line.strip(" -") for line in said if "native kernels are not built" in line]
        say(notes[-1] if notes else f"The native kernels are not built ({cause}). The slower path will be used.")
        say("Answers are the same, only slower. On Debian and Ubuntu this mends it:  sudo apt install g++  and the same command again.")


# ---- small things ----


def digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def save(stamps: dict[str, object], **new: object) -> dict[str, object]:
    stamps = {**stamps, **new}
    STAMPS.write_text(json.dumps(stamps, indent=1) + "\n")
    return stamps


def pip(*arguments: str, hint: str = "") -> list[str]:
    """Run pip in the environment, showing only what it downloads; gives all that it said, which also goes to the log."""
    command = [str(PYTHON), "-m", "pip", *arguments]
    environment = {"CXX": compiler() or "", **os.environ}  # else the build takes the compiler that Python itself was built with
    said: list[str] = []
    with LOG.open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
        )
        for line in process.stdout or ():
            log.write(line)
            said.append(line.rstrip())
            if download := re.match(r"\s*Downloading (?:\S*/)?([^\s/]+) \(([\d.]+ [MG]B)\)", line):
                say(f"  {download[2]:>9}  {unquote(download[1])}")
    if process.wait() != 0:
        errors = [line for line in said if line.lstrip().startswith(("ERROR", "error:"))]
        raise SetupError("\n".join([*errors[-3:], *filter(None, [hint]), f"All that pip said: {LOG}. The same command goes on from here."]))
    return said


def run(command: list[object], check: bool = True, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(list(map(str, command)), cwd=ROOT, check=check, timeout=timeout, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise SetupError(f"{shlex.join(map(str, command))} failed:\n{error.stdout}{error.stderr}") from error
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(str(command), returncode=1, stdout="", stderr="")


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SetupError as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command goes on from here.")
