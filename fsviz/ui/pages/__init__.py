"""One module per page, named as the page is. No page imports another."""
