"""The command line as data, for manual pages and the reference on the web site."""

from penstock.cli.common.manual.describe import Example, Page, Paragraph, page, pages

__all__ = ["Example", "Page", "Paragraph", "page", "pages"]
