"""Problems over long texts whose answers are known exactly: what attention that reads less is judged by."""
