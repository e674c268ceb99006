"""The programs of src/retoma/services, tried as processes. (tests/services.py is about servers.)"""
