"""Writes the pages of docs/reference that follow from the code.

python -m tools.reference       after settings, arguments, frames, log events or the API changed
"""

from tools.reference.pages import FOLDER, PAGES

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page())
