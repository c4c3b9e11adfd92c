// Results show the place of the word, for which the browser loads each page: from files it may not.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
