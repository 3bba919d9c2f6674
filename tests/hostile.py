"""Names that try to be code somewhere: links, pictures, markup, formulas, icons, templates, tables."""

from __future__ import annotations

NAMES = (
    "[click me](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<b>bold</b>",
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("https://evil.example","x")',
    "$x^2$",
    ":red[x]",
    ":material/home:",
    "a|b",
    "%s{0}%{x}",
    "www.evil.example and me@evil.example -> -- there",
    '<a href="https://evil.example">a</a>',
    "`code` *stars* _lines_ # and & &lt; 1. - + ~~gone~~",
    "\u202egnp.\u2066evil\u200f",
    "long " * 40,
)
