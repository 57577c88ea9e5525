"""The command line described as data: what man pages and the site's reference are made of."""

from penstock.cli.common.manual.describe import Example, Page, Paragraph, page, pages

__all__ = ["Example", "Page", "Paragraph", "page", "pages"]
