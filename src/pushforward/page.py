"""A page around one check, that opens offline."""

import html
import pkgutil

STYLE = "\n" + (pkgutil.get_data(__name__, "page.css") or b"").decode()


def check_page(fragment: str, target: str) -> str:
    """Return a whole page around the fragment of a check."""
    title = html.escape(f"pushforward: check of {target}")
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>{fragment}"
        "<footer><p>Made by <code>pushforward check</code>.</p></footer></body></html>\n"
    )
