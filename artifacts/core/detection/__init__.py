"""What is this file? Its type, kind and encoding, by metadata and by its bytes."""
