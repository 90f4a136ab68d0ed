"""Sphinx's settings for the course's site."""

import os

from website import finish, formulas, reading, search, translation

project = "Distributed training, measured"
author = copyright = "the course's authors"
extensions = ["myst_nb", "sphinx_book_theme"]
extensions += [module.__name__ for module in (reading, formulas, search, translation)]
locale_dirs = [os.path.join(os.path.dirname(__file__), "locale")]
gettext_compact = False  # a file of translations for each page
gettext_uuid = False
suppress_warnings = ["i18n.inconsistent_references"]  # translation.py names the entry too
templates_path = ["templates"]
html_theme = "sphinx_book_theme"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["course.css"]
html_title = project
html_favicon = "static/ranks.svg"
html_context = {
    "default_mode": "auto",  # light or dark, as the reader's system
    "translated": {path.name: finish.translated(path.name) for path in finish.LOCALE.iterdir()},
}
html_copy_source = False
html_use_index = False
html_show_sphinx = False

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_heading_slug_func = "website.reading.slug"
nb_execution_mode = "off"
nb_merge_streams = True

# GitHub's workflows say which repository they run in; without one there is no link to it.
repository = os.environ.get("GITHUB_REPOSITORY", "")
html_theme_options = {
    "home_page_in_toc": True,
    "use_download_button": False,
    "disable_search": True,  # the dialog of the theme: search.py has its own page
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search",
    "navbar_persistent": [],  # one search field is enough: the one beside the contents
    "secondary_sidebar_items": {"**": ["page-toc.html"], "index": []},
}
if repository:
    html_theme_options |= {
        "repository_url": f"https://github.com/{repository}",
        "use_repository_button": True,
    }
html_sidebars = {
    "**": ["navbar-logo.html", "search-field.html", "languages.html", "sbt-sidebar-nav.html"]
}
