# make run     set up .venv, fetch the default model, open the window (without a screen: the same job in the terminal)
# make test    set up, then the tests            ARGS=… goes to pytest; SLOW=1 adds the slow ones
# make lint    ruff, mypy, import-linter
# make bench   time decoding and adding against transformers on the default model
# make gpu-check  compile the kernels for NVIDIA GPUs, which need not be there, and say what they would take of one
# make peers   install llama.cpp beside Longshelf, for bench peers (built from source: minutes)
# make clean   remove what building and testing left; make distclean also removes .venv
#
# PYTHON=…  the Python to make .venv with (3.11 or newer)
# TORCH=…   the build of torch, as pip arguments: make run TORCH=torch==2.14.1

.DEFAULT_GOAL := run
.PHONY: run test lint bench gpu-check peers clean distclean python

FIND_PYTHON := for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && echo $$p && break; done
ifndef PYTHON
PYTHON := $(shell $(FIND_PYTHON))
endif
export TORCH

# Where tests and benches keep the default model's download, so that it is fetched once for all checkouts.
test bench: export LONGSHELF_MODEL_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/longshelf-tests/wheels

run: python
	@$(PYTHON) setup/environment.py
	@.venv/bin/python setup/first_run.py

test: python
	@$(PYTHON) setup/environment.py test
	@.venv/bin/python setup/model_cache.py
	@QT_QPA_PLATFORM=$${QT_QPA_PLATFORM:-offscreen} .venv/bin/python -m pytest $(if $(SLOW),,-m "not slow") $(ARGS)

lint: python
	@$(PYTHON) setup/environment.py lint
	.venv/bin/python -m ruff check .
	.venv/bin/python -m mypy
	.venv/bin/lint-imports --no-cache

peers: python
	@$(PYTHON) setup/environment.py peers

gpu-check: python
	@$(PYTHON) setup/environment.py gpu
	.venv/bin/python -m kernels.gpu.compile

bench: python
	@$(PYTHON) setup/environment.py
	.venv/bin/longshelf models fetch
	.venv/bin/longshelf bench decode
	.venv/bin/longshelf bench add

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f kernels/cpu/liblongshelf_cpu.*
	find app engine kernels resources setup tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv

python:
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Longshelf needs Python 3.11 or newer; $(if $(PYTHON),$(PYTHON) is older or can't be started,none was found)."; \
	  echo "Install one (on Debian and Ubuntu: sudo apt install python3 python3-venv) or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; \
	  exit 1; } >&2
