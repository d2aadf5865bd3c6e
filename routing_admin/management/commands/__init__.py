"""python manage.py …"""
