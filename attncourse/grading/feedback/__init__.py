"""What students get back: a page each, and zips as learning platforms take them."""
