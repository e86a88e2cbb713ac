"""Request bodies before anything is made of them: how many bytes are held at once, how much a JSON text holds."""
