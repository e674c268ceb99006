"""Code and bytes that are not trusted, in processes of their own."""
