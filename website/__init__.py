"""The course as a web site, built from the outputs that the notebooks hold: nothing is executed."""
